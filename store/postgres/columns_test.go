package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func TestTextsAreEncodedInPlaceAsPgxWould(t *testing.T) {
	const enum, arrayOfEnum = 100_000, 100_001
	known := pgtype.NewMap()
	ofEnum := &pgtype.Type{Name: "mood", OID: enum, Codec: &pgtype.EnumCodec{}}
	known.RegisterType(ofEnum)
	known.RegisterType(&pgtype.Type{Name: "_mood", OID: arrayOfEnum, Codec: &pgtype.ArrayCodec{ElementType: ofEnum}})
	for _, oid := range []uint32{pgtype.TextArrayOID, arrayOfEnum} {
		for _, texts := range [][]string{{}, {""}, {"a", "", "ä\"{,}"}} {
			want, err := known.Encode(oid, pgtype.BinaryFormatCode, pgtype.FlatArray[string](texts), nil)
			require.NoError(t, err)
			column := postgres.Column(texts, func(text string) string { return text })
			got, err := known.Encode(oid, pgtype.BinaryFormatCode, column, nil)
			require.NoError(t, err)
			require.Equal(t, want, got, "%q", texts)
		}
	}
}

func TestTheSameTextIsKept(t *testing.T) {
	var text postgres.SameText
	raw := []byte("ab")
	require.NoError(t, text.ScanBytes(raw))
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = text.ScanBytes(raw) }))
	raw[1] = 'c'
	require.Equal(t, "ab", string(text), "it does not change with the row that it came from")
	require.NoError(t, text.ScanBytes(raw))
	require.Equal(t, "ac", string(text))
	require.NoError(t, text.ScanBytes(nil))
	require.Empty(t, text)
}
