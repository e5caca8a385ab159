package job

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"
)

// ID identifies a job. It is a UUIDv7, made when the job is submitted, so that
// ids sort by creation time. In a cell, it names the cell: see Cell.Stamp.
type ID [16]byte

// LeaseID identifies one lease. It is a random UUID made by whoever claims. Every write
// about a running job must have it: after an asynchronous failover, the fence alone could
// be issued twice.
type LeaseID [16]byte

// ErrBadID says that a text is not a UUID.
var ErrBadID = errors.New("not a UUID of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")

// String returns the canonical lower-case form.
func (id ID) String() string { return formatUUID(id) }

// Time is when the id was made, to the millisecond, by the clock of whoever made it (RFC
// 9562, UUIDv7). Cells change nothing about it.
func (id ID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
}

// String returns the canonical lower-case form.
func (id LeaseID) String() string { return formatUUID(id) }

// AppendText appends the canonical form. It never fails.
func (id ID) AppendText(text []byte) ([]byte, error) { return appendUUID(text, id), nil }

// MarshalText writes the canonical form, so that an ID is a string in JSON.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText reads the canonical form. It returns ErrBadID for any other.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// ParseID reads the canonical form, in either case. It returns ErrBadID for
// anything else: braces, URNs and undashed forms are refused.
func ParseID(text string) (ID, error) {
	var id ID
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return ID{}, ErrBadID
	}
	digits := text[0:8] + text[9:13] + text[14:18] + text[19:23] + text[24:36]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return ID{}, ErrBadID
	}
	return id, nil
}

func formatUUID(id [16]byte) string {
	var text [36]byte
	return string(appendUUID(text[:0], id))
}

func appendUUID(text []byte, id [16]byte) []byte {
	text = hex.AppendEncode(text, id[0:4])
	text = append(text, '-')
	text = hex.AppendEncode(text, id[4:6])
	text = append(text, '-')
	text = hex.AppendEncode(text, id[6:8])
	text = append(text, '-')
	text = hex.AppendEncode(text, id[8:10])
	text = append(text, '-')
	return hex.AppendEncode(text, id[10:16])
}
