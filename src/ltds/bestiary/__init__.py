"""Bestiary's pictures: fifty kinds of animals in five drawing styles, drawn without torch and without a download."""

from ltds.bestiary.kinds import KINDS, NAMES, Kind, attribute_table
from ltds.bestiary.pose import Variety
from ltds.bestiary.render import DOMAINS, RENDERER, render
from ltds.bestiary.sentences import describe
from ltds.bestiary.sheet import contact_sheet

__all__ = [
    "DOMAINS",
    "KINDS",
    "NAMES",
    "RENDERER",
    "Kind",
    "Variety",
    "attribute_table",
    "contact_sheet",
    "describe",
    "render",
]
