package jobs

import (
	"testing"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
