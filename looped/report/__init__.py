"""The page a person opens: one self-contained HTML file, and its figures as SVG and PNG.

It shows what `looped.scaling` computes and computes nothing of its own but the numbers that its one
interactive figure needs. Neither torch nor lightning.
"""
