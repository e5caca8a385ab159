package store

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// The statements take batches as one array a column. These types encode
// without reflection.
type (
	uuids     = pgtype.FlatArray[pgtype.UUID]
	texts     = pgtype.FlatArray[pgtype.Text]
	intervals = pgtype.FlatArray[pgtype.Interval]
	instants  = pgtype.FlatArray[pgtype.Timestamptz]
)

// column gathers one value of each element.
func column[T, V any](batch []T, value func(T) V) pgtype.FlatArray[V] {
	values := make(pgtype.FlatArray[V], len(batch))
	for i, element := range batch {
		values[i] = value(element)
	}
	return values
}

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
