package job

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDuplicateMembers(t *testing.T) {
	for text, want := range map[string][]string{
		`{}`: nil, `[1,1]`: nil, `1`: nil, ``: nil, `{"a":1,"b":{"a":1,"a":2}}`: nil,
		`{"a":1,"a":1}`: {"a"}, `{"a":1,"b":2,"\u0061":[],"b":3,"b":4}`: {"a", "b"},
	} {
		require.Equal(t, want, DuplicateMembers([]byte(text)), text)
	}
}
