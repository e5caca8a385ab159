package submission

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzScan compares the scanner with encoding/json.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, ` [ 1 , -0.5e+7, "a\u00e9\n", true, false, null, {"a":{"b":[]}} ] `, `01`, `-`, `1.`, `1e`, `"\x"`, `"\u12g4"`, `"`, `nul`, `truex`,
		`{"a"}`, `{"a":}`, `{,}`, `[,]`, `[1,]`, `{"a":1,}`, "\"\x00\"", "\"\xff\"", "\ufeff{}", `[1 2]`, `{} {}`, `"\ud800"`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := scanner{text: text}
		ok := s.value() && s.atEnd()
		if s.fault == tooDeep {
			return
		}
		require.Equal(t, json.Valid(text) && utf8.Valid(text), ok)
		if !ok {
			require.NotNil(t, s.problem(1, len(text)))
		}
	})
}

func TestAValueMayBeNestedAHundredLevelsDeep(t *testing.T) {
	for levels, deep := range map[int]bool{100: false, 101: true} {
		item := Parse([]byte(strings.Repeat("[", levels)+strings.Repeat("]", levels)), 1)
		if deep {
			require.EqualError(t, item.Problem, "the body is nested more than 100 levels deep: line 1, column 101")
		} else {
			require.Nil(t, item.Problem)
		}
	}
}

func TestAnItemOfAnArrayIsBoundedInBytes(t *testing.T) {
	array := NewArray([]byte(` [{"jobType":"A"}, {"jobType":"AB"},{"jobType":"C"}]`), len(`{"jobType":"A"}`))
	for _, want := range []string{"A", "", "C"} {
		item, err := array.Next()
		require.NoError(t, err)
		require.Equal(t, want, item.Type)
		if want == "" {
			require.Equal(t, 413, item.Problem.Status)
			require.EqualError(t, item.Problem, "the submission is larger than 15 bytes: line 1, column 20")
		}
	}
	_, err := array.Next()
	require.True(t, errors.Is(err, io.EOF))
}

func TestTextIsCheckedWithoutAllocations(t *testing.T) {
	text := []byte(`{"a":[1,2,{"b":"text"}],"c":{"d":[[[]]]}}`)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s := scanner{text: text}
		_ = s.value()
	}))
}
