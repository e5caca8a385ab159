package store

import (
	"database/sql/driver"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// column gathers one value of each element: statements take batches as one array
// a column.
func column[T, V any](batch []T, value func(T) V) pgtype.ArrayGetter {
	values := make([]V, len(batch))
	for i, element := range batch {
		values[i] = value(element)
	}
	if _, ok := any(new(V)).(driver.Valuer); ok {
		return pointers[V](values)
	}
	return pgtype.FlatArray[V](values)
}

// pointers is an array of pgtype's structs. Each is encoded where it stands;
// pgtype.FlatArray allocates a copy of each.
type pointers[V any] []V

var _ pgtype.ArrayGetter = pointers[pgtype.UUID]{}

func (p pointers[V]) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(p)), LowerBound: 1}} //nolint:gosec // batches are small
}

func (p pointers[V]) Index(i int) any { return &p[i] }

func (p pointers[V]) IndexType() any { return new(V) }

func uuid(id [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// text is null for the empty string.
func text(s string) pgtype.Text { return pgtype.Text{String: s, Valid: s != ""} }

// document is null for an absent JSON text.
func document(json []byte) pgtype.Text {
	return pgtype.Text{String: string(json), Valid: len(json) > 0}
}

func interval(d time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: d.Microseconds(), Valid: true}
}

// instant is null for the zero time.
func instant(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

// duration takes a day for 24 hours and a month for 30 days.
func duration(i pgtype.Interval) time.Duration {
	const day = 24 * time.Hour
	return time.Duration(i.Microseconds)*time.Microsecond + time.Duration(i.Days)*day + time.Duration(i.Months)*30*day
}
