package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin"
)

func TestEcho(t *testing.T) {
	require.NoError(t, Echo(t.Context(), plugin.Job[Args]{Args: Args{Text: "hold fast"}}))
}
