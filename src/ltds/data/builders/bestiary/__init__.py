"""The bestiary: fifty drawn creatures in five drawing styles, long-tailed, with no download."""

from ltds.data.builders.bestiary.build import build
from ltds.data.builders.bestiary.kinds import KINDS, NAMES, Kind, attribute_table
from ltds.data.builders.bestiary.plan import BestiaryConfig
from ltds.data.builders.bestiary.pose import Variety
from ltds.data.builders.bestiary.render import DOMAINS, RENDERER, render
from ltds.data.builders.bestiary.sentences import describe
from ltds.data.builders.bestiary.sheet import contact_sheet

__all__ = [
    "DOMAINS",
    "KINDS",
    "NAMES",
    "RENDERER",
    "BestiaryConfig",
    "Kind",
    "Variety",
    "attribute_table",
    "build",
    "contact_sheet",
    "describe",
    "render",
]
