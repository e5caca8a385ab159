package postgres

import (
	"database/sql/driver"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Column collects one value of each element. Statements take a batch as one
// array per column.
func Column[T, V any](batch []T, value func(T) V) pgtype.ArrayGetter {
	values := make([]V, len(batch))
	for i, element := range batch {
		values[i] = value(element)
	}
	if _, ok := any(new(V)).(driver.Valuer); ok {
		return Pointers[V](values)
	}
	if texts, ok := any(values).([]string); ok {
		return textArray(texts)
	}
	return pgtype.FlatArray[V](values)
}

// textArray is an array of texts, or of values of an enum. It encodes each in place.
type textArray []string

// Dimensions implements pgtype.ArrayGetter.
func (a textArray) Dimensions() []pgtype.ArrayDimension { return oneDimension(len(a)) }

// Index implements pgtype.ArrayGetter.
func (a textArray) Index(i int) any { return (*textElement)(&a[i]) }

// IndexType implements pgtype.ArrayGetter.
func (a textArray) IndexType() any { return new(textElement) }

type textElement string

// TextValue implements pgtype.TextValuer. It is never null.
func (e *textElement) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: string(*e), Valid: true}, nil
}

func oneDimension(length int) []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(length), LowerBound: 1}} //nolint:gosec // batches are small
}

// Pointers is an array of pgtype's structs. It encodes each in place;
// pgtype.FlatArray allocates a copy of each.
type Pointers[V any] []V

var _ pgtype.ArrayGetter = Pointers[pgtype.UUID]{}

// Dimensions implements pgtype.ArrayGetter.
func (p Pointers[V]) Dimensions() []pgtype.ArrayDimension { return oneDimension(len(p)) }

// Index implements pgtype.ArrayGetter.
func (p Pointers[V]) Index(i int) any { return &p[i] }

// IndexType implements pgtype.ArrayGetter.
func (p Pointers[V]) IndexType() any { return new(V) }

// UUID is never null.
func UUID(id [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// RowToUUID returns a function that reads rows of one id, without an allocation for each. The
// function is for one statement: its rows share what they are read into.
func RowToUUID() pgx.RowToFunc[[16]byte] {
	id := new([16]byte)
	into := []any{id}
	return func(row pgx.CollectableRow) ([16]byte, error) {
		err := row.Scan(into...)
		return *id, err
	}
}

// SameText is for a column of texts that are mostly the same in all rows, if these are read into
// the same place: it keeps the last one. It is empty for null.
type SameText string

// ScanBytes implements pgtype.BytesScanner.
func (t *SameText) ScanBytes(text []byte) error {
	if string(text) != string(*t) {
		*t = SameText(text)
	}
	return nil
}

// Text is null for the empty string.
func Text(s string) pgtype.Text { return pgtype.Text{String: s, Valid: s != ""} }

// Document is null for an absent JSON text.
func Document(json []byte) pgtype.Text {
	return pgtype.Text{String: string(json), Valid: len(json) > 0}
}

// Interval is never null.
func Interval(d time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: d.Microseconds(), Valid: true}
}

// Instant is null for the zero time.
func Instant(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

// Duration counts a day as 24 hours and a month as 30 days.
func Duration(i pgtype.Interval) time.Duration {
	const day = 24 * time.Hour
	return time.Duration(i.Microseconds)*time.Microsecond + time.Duration(i.Days)*day + time.Duration(i.Months)*30*day
}
