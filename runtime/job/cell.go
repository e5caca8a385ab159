package job

import (
	"errors"
	"fmt"
	"strconv"
)

// Cell is one of several databases that share the work behind a proxy. Each has jobs,
// orchestrators and idempotency keys of its own. The zero Cell is none: a database that
// works alone.
type Cell struct {
	number  uint8
	present bool
}

// CellOf returns the cell with that number.
func CellOf(number uint8) Cell { return Cell{number, true} }

// Number returns false for no cell.
func (c Cell) Number() (uint8, bool) { return c.number, c.present }

// String is the number, or empty for no cell.
func (c Cell) String() string {
	if !c.present {
		return ""
	}
	return strconv.Itoa(int(c.number))
}

// The bytes of an id that say which cell made it.
const (
	versionByte = 6 // the version is its upper half
	cellByte    = 15
	cellVersion = 8
)

// Stamp makes a new UUIDv7 the id of something in the cell: a UUID of version 8 (RFC 9562)
// whose last byte is the number of the cell. So the last two digits of its text are the
// cell, in hexadecimal:
//
//	0192d3f4-5a6b-8c8d-9e0f-a1b2c3d4e503
//	              │                   └┴ the cell: 3
//	              └ the version: 8
//
// All other bits are those of the UUIDv7: 48 of milliseconds, 12 that count within one,
// and 54 random ones. So ids of all cells and of none sort by creation time together.
// Without a cell, Stamp returns the id as it is.
func (c Cell) Stamp(id ID) ID {
	if c.present {
		id[versionByte] = cellVersion<<4 | id[versionByte]&0x0f
		id[cellByte] = c.number
	}
	return id
}

// Cell returns which cell made the id: none for a UUIDv7.
func (id ID) Cell() Cell {
	if id[versionByte]>>4 != cellVersion {
		return Cell{}
	}
	return CellOf(id[cellByte])
}

// ErrWrongCell says that a database is not the cell that a program was configured for.
var ErrWrongCell = errors.New("wrong cell")

// MatchCell returns ErrWrongCell unless the database is the cell that is configured.
func MatchCell(database, configured Cell) error {
	switch {
	case database == configured:
		return nil
	case !configured.present:
		return fmt.Errorf("%w: the database is cell %s, and database.cell is not set: set it to %s, or use a database that is no cell",
			ErrWrongCell, database, database)
	case !database.present:
		return fmt.Errorf("%w: database.cell is %s, and the database is no cell: `orchestrator migrate up` makes it cell %s",
			ErrWrongCell, configured, configured)
	}
	return fmt.Errorf("%w: the database is cell %s, and database.cell is %s: set it to %s, or use the database of cell %s; "+
		"a database never becomes another cell", ErrWrongCell, database, configured, database, configured)
}
