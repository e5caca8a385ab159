package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// A cursor is a version, the place where a page ended, and a checksum over
// both and the filter. The checksum keeps clients from going on with another
// filter, which would leave jobs out; it guards no secret.
const (
	cursorVersion = 1
	checksumSize  = 8
)

var errCursor = errors.New("is not a cursor that this list has given for these filters")

// cursorText hides nothing, but is nothing to be made up either.
var cursorText = base64.RawURLEncoding.Strict()

func sealCursor(filter string, place []byte) string {
	sealed := append([]byte{cursorVersion}, place...)
	return cursorText.EncodeToString(append(sealed, checksum(filter, sealed)...))
}

// openCursor returns the place of the given size. Only the very text that
// sealCursor returned for the filter is accepted.
func openCursor(text, filter string, size int) ([]byte, error) {
	sealed, err := cursorText.DecodeString(text)
	if err != nil || len(sealed) != 1+size+checksumSize {
		return nil, errCursor
	}
	place := sealed[1 : 1+size]
	if sealCursor(filter, place) != text {
		return nil, errCursor
	}
	return place, nil
}

func checksum(filter string, sealed []byte) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q%s", filter, sealed))
	return sum[:checksumSize]
}

// fingerprint is the text of what a list is filtered by.
func fingerprint(list string, filter ...any) string { return fmt.Sprintf("%s %q", list, filter) }

func sealID(filter string, id job.ID) string {
	if id == (job.ID{}) {
		return ""
	}
	return sealCursor(filter, id[:])
}

func openID(text, filter string) (job.ID, error) {
	if text == "" {
		return job.ID{}, nil
	}
	place, err := openCursor(text, filter, len(job.ID{}))
	if err != nil {
		return job.ID{}, err
	}
	return job.ID(place), nil
}

const timeSize = 8

// sealDeadLetter keeps the microseconds, which are all that the database has.
func sealDeadLetter(filter string, at job.DeadLetterPosition) string {
	place := binary.BigEndian.AppendUint64(nil, uint64(at.DeadAt.UnixMicro()))
	return sealCursor(filter, append(place, at.ID[:]...))
}

func openDeadLetter(text, filter string) (job.DeadLetterPosition, error) {
	if text == "" {
		return job.DeadLetterPosition{}, nil
	}
	place, err := openCursor(text, filter, timeSize+len(job.ID{}))
	if err != nil {
		return job.DeadLetterPosition{}, err
	}
	return job.DeadLetterPosition{
		DeadAt: time.UnixMicro(int64(binary.BigEndian.Uint64(place))).UTC(),
		ID:     job.ID(place[timeSize:]),
	}, nil
}
