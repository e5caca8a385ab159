package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// A cursor is a version, the position where a page ended, and a checksum over both and
// the filters. The checksum keeps clients from continuing with other filters, which
// would skip jobs. It protects no secret.
const (
	cursorVersion = 1
	checksumSize  = 8
	timeSize      = 8
)

var errCursor = errors.New("is not a cursor of this list with these filters")

// cursorText is readable by anybody. It only keeps clients from making up cursors.
var cursorText = base64.RawURLEncoding.Strict()

// cursors are those of one list with one set of filters.
type cursors struct{ filters string }

func cursorsFor(list string, filters ...any) cursors {
	return cursors{fmt.Sprintf("%s %q", list, filters)}
}

func (c cursors) seal(position []byte) string {
	sealed := append([]byte{cursorVersion}, position...)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q%s", c.filters, sealed))
	return cursorText.EncodeToString(append(sealed, sum[:checksumSize]...))
}

// open returns a position of the given size, or nil for no text. It accepts only
// what seal returned for these filters.
func (c cursors) open(text string, size int) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	sealed, err := cursorText.DecodeString(text)
	if err != nil || len(sealed) != 1+size+checksumSize {
		return nil, errCursor
	}
	position := sealed[1 : 1+size]
	if c.seal(position) != text {
		return nil, errCursor
	}
	return position, nil
}

func (c cursors) sealID(id job.ID) string {
	if id == (job.ID{}) {
		return ""
	}
	return c.seal(id[:])
}

func (c cursors) openID(text string) (id job.ID, err error) {
	position, err := c.open(text, len(id))
	copy(id[:], position)
	return id, err
}

func (c cursors) sealDeadLetter(last job.DeadLetter) string {
	return c.sealMoment(moment{last.DeadAt, last.ID})
}

func (c cursors) openDeadLetter(text string) (job.DeadLetterPosition, error) {
	last, err := c.openMoment(text)
	return job.DeadLetterPosition{DeadAt: last.At, ID: last.ID}, err
}

// moment is a position in a list that is in the order of time.
type moment struct {
	At time.Time
	ID job.ID
}

// sealMoment keeps microseconds, which is the precision of the database.
func (c cursors) sealMoment(last moment) string {
	position := binary.BigEndian.AppendUint64(nil, uint64(last.At.UnixMicro()))
	return c.seal(append(position, last.ID[:]...))
}

func (c cursors) openMoment(text string) (last moment, err error) {
	position, err := c.open(text, timeSize+len(last.ID))
	if position == nil {
		return last, err
	}
	last.At = time.UnixMicro(int64(binary.BigEndian.Uint64(position))).UTC()
	copy(last.ID[:], position[timeSize:])
	return last, nil
}

// sealAct keeps microseconds, too.
func (c cursors) sealAct(last job.Act) string {
	position := binary.BigEndian.AppendUint64(nil, uint64(last.At.UnixMicro()))
	return c.seal(binary.BigEndian.AppendUint64(position, uint64(last.ID)))
}

func (c cursors) openAct(text string) (after job.ActPosition, err error) {
	position, err := c.open(text, 2*timeSize)
	if position == nil {
		return after, err
	}
	after.At = time.UnixMicro(int64(binary.BigEndian.Uint64(position))).UTC()
	after.ID = int64(binary.BigEndian.Uint64(position[timeSize:]))
	return after, nil
}

func (c cursors) sealNames(first, second string) string {
	return c.seal([]byte(first + "\x00" + second))
}

// openNames returns two empty names for an empty text.
func (c cursors) openNames(text string) (first, second string, err error) {
	position, err := c.open(text, max(cursorText.DecodedLen(len(text))-1-checksumSize, 0))
	if err != nil || position == nil {
		return "", "", err
	}
	first, second, _ = strings.Cut(string(position), "\x00")
	return first, second, nil
}
