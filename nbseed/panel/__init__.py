"""The panel: what each generator is at after each cell, and buttons for the magics.

`rows` and `history` say what there is to see, `style` and `pages` make text and HTML of it, and
`widget` alone knows ipywidgets.
"""
