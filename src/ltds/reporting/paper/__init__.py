"""The numbers that the paper prints (Gu et al., ECCV 2022), and which of them belong to a table of runs."""
