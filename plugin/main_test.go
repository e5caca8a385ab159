package plugin

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/plugin/internal/wire"
)

// TestMain lets the test binary be a handler process, too.
func TestMain(m *testing.M) {
	if os.Getenv(wire.CookieKey) != "" || os.Getenv("BY_HAND") != "" {
		processUnderTest()
		return
	}
	goleak.VerifyTestMain(m)
}
