package plugin

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// TestMain lets the test binary be a handler process, too.
func TestMain(m *testing.M) {
	if os.Getenv(protocol.CookieKey) != "" || os.Getenv("BY_HAND") != "" {
		processUnderTest()
		return
	}
	goleak.VerifyTestMain(m)
}
