package store

import (
	"flag"
	"os"
	"testing"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// Sequences of random steps are the same each time, so that a change fails for what it changes:
// seed 1, unless -rapid.seed says otherwise. `make test-deep` draws another seed each time.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.seed" })
	if !given {
		if err := flag.Set("rapid.seed", "1"); err != nil {
			os.Exit(2)
		}
	}
	pgtest.Main(m)
}
