package job_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestPointersAreRead(t *testing.T) {
	for text, steps := range map[string]job.Pointer{
		"":               {},
		"/":              {""},
		"/customer/id":   {"customer", "id"},
		"/items/0":       {"items", "0"},
		"/a~1b/~0/~01//": {"a/b", "~", "~1", "", ""},
		"/ü ~0~1":        {"ü ~/"},
	} {
		read, err := job.ParsePointer(text)
		require.NoError(t, err, text)
		require.Equal(t, steps, read, text)
		require.Equal(t, text, read.String())
	}
}

func TestWhatIsNoPointerIsRefused(t *testing.T) {
	for text, complaint := range map[string]string{
		"customer": "begins with a slash", "#/customer": "begins with a slash", "$.customer": "begins with a slash", " /a": "begins with a slash",
		"/~": "~ is written as ~0", "/a~2": "~ is written as ~0", "/~~0": "~ is written as ~0", "/a~/b": "~ is written as ~0",
	} {
		_, err := job.ParsePointer(text)
		require.ErrorContains(t, err, complaint, text)
	}
}
