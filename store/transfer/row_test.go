package transfer

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARowIsTheSameThereAndBack(t *testing.T) {
	for row, line := range map[string]string{
		`a`:                 `["a"]`,
		`\N`:                `[null]`,
		``:                  `[""]`,
		"\t":                `["",""]`,
		`\\N` + "\t" + `\N`: `["\\N",null]`,
		`\t\n\r\\"é🎉`:       `["\u0009\u000a\u000d\\\"é🎉"]`,
		"\x01\x7f":          "[\"\\u0001\x7f\"]",
	} {
		got, err := appendJSON(nil, []byte(row))
		require.NoError(t, err)
		require.Equal(t, line, string(got))
		require.True(t, json.Valid(got))
		back, columns, err := appendCopy(nil, got)
		require.NoError(t, err)
		require.Equal(t, row+"\n", string(back))
		require.Equal(t, strings.Count(row, "\t")+1, columns)
	}
}

func TestWhatIsNoRowIsRefused(t *testing.T) {
	for _, line := range []string{
		``, `[`, `]`, `[]`, `["a"`, `["a",]`, `["a" ]`, `["a"]]`, `[1]`, `["a]`, `["\x"]`, `["\`, `["\u000`, `["\u0000"]`, `["\u0100"]`, `["\u00zz"]`, `{"a":1}`, `[nul]`,
	} {
		_, _, err := appendCopy(nil, []byte(line))
		require.ErrorIs(t, err, errRow, line)
	}
	_, err := appendJSON(nil, []byte("\xff"))
	require.ErrorContains(t, err, "it is not UTF-8")
	_, err = appendJSON(nil, []byte(`\q`))
	require.ErrorContains(t, err, "which is unknown")
}

func FuzzRows(f *testing.F) {
	f.Add(`["a",null,"\u0009\\\""]`)
	f.Fuzz(func(t *testing.T, line string) {
		row, _, err := appendCopy(nil, []byte(line))
		if err != nil {
			return
		}
		back, err := appendJSON(nil, row[:len(row)-1])
		if err != nil {
			return // it is not UTF-8
		}
		again, _, err := appendCopy(nil, back)
		require.NoError(t, err)
		require.Equal(t, string(row), string(again))
	})
}

func TestADigestDoesNotDependOnTheOrder(t *testing.T) {
	digest := func(rows ...string) (d Digest) {
		for _, row := range rows {
			d.add([]byte(row))
		}
		return d
	}
	require.Equal(t, digest("a", "b", "c"), digest("c", "a", "b"))
	require.NotEqual(t, digest("a", "b"), digest("a", "b", "b"))
	require.NotEqual(t, digest("a", "a"), digest())
	text, err := digest("a", "b").MarshalText()
	require.NoError(t, err)
	var back Digest
	require.NoError(t, back.UnmarshalText(text))
	require.Equal(t, digest("a", "b"), back)
	require.Error(t, back.UnmarshalText([]byte("12")))
}
