package protocol_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

func TestTheProtocolsNameHoldsItsVersion(t *testing.T) {
	name := fmt.Sprintf("holdfast.handler.v%d", protocol.Version)
	require.Equal(t, name, string(handlerv1.File_handler_proto.Package()))
	proto, err := os.ReadFile("../../proto/handler.proto")
	require.NoError(t, err)
	require.Contains(t, string(proto), "\npackage "+name+";\n")
	require.Contains(t, string(proto), fmt.Sprintf("handlerv%d\";\n", protocol.Version), "the Go package")
}

// The SDKs of other languages cannot import what both ends must agree on.
func TestOtherLanguagesAgree(t *testing.T) {
	for path, facts := range map[string][]string{
		"python/src/holdfast/_limits.py": {
			`PROTOCOL_VERSION = %d`, `COOKIE_KEY = "%s"`, `COOKIE_VALUE = "%s"`,
			`MAX_MESSAGE_BYTES = %d << 20`, `MAX_SCHEMA_BYTES = %d << 10`,
			`CODE_TIMEOUT = "%s"`, `CODE_LEASE_LOST = "%s"`,
		},
		"node/lib/limits.js": {
			`protocolVersion = %d;`, `cookieKey = '%s';`, `cookieValue = '%s';`,
			`maxMessage = %d << 20;`, `maxSchema = %d << 10;`,
			`timeout: '%s',`, `leaseLost: '%s',`,
		},
	} {
		text, err := os.ReadFile("../../../sdk/" + path)
		require.NoError(t, err)
		for i, fact := range []any{
			protocol.Version, protocol.CookieKey, protocol.CookieValue,
			protocol.MaxMessageBytes >> 20, protocol.MaxSchemaBytes >> 10, protocol.CodeTimeout, protocol.CodeLeaseLost,
		} {
			require.Contains(t, string(text), fmt.Sprintf(facts[i], fact), path)
		}
	}
}
