package v1

// CellHeader is a header of every answer of a cell, with its number.
const CellHeader = "X-Holdfast-Cell"
