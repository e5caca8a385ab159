package job

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestTextIsCleanedSoThatItCanBeStored(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"aé", 2, "a"},
		{"aéé", 3, "aé"},
		{"a\x00b", 10, "a\uFFFDb"},
		{"a\x00b", 3, "a"},
		{"a\xffb", 10, "a\uFFFDb"},
		{"ab\xf0\x9f\x98\x80c", 4, "ab"},
		{strings.Repeat("\x00", 100), 4, "\uFFFD"},
		{strings.Repeat("é", 100), 0, ""},
	} {
		require.Equal(t, c.want, CleanText(c.text, c.limit), "%q", c.text)
	}
}

func TestCutTextDoesNotKeepTheLongTextInMemory(t *testing.T) {
	long := strings.Repeat("x", 1000)
	require.NotSame(t, unsafe.StringData(long), unsafe.StringData(CleanText(long, 10)))
}
