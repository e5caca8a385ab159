package wire_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/wire"
)

func TestTheProtocolsNameHoldsItsVersion(t *testing.T) {
	name := fmt.Sprintf("holdfast.handler.v%d", wire.Version)
	require.Equal(t, name, string(handlerv1.File_handler_proto.Package()))
	proto, err := os.ReadFile("../../proto/handler.proto")
	require.NoError(t, err)
	require.Contains(t, string(proto), "\npackage "+name+";\n")
	require.Contains(t, string(proto), fmt.Sprintf("handlerv%d\";\n", wire.Version), "the Go package")
}
