package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// product is the module of the product.
const product = "github.com/holdfast-jobs/holdfast/"

func TestTheCheckerSharesNoCodeWithTheProduct(t *testing.T) {
	listed, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	var ours []string
	for _, pkg := range strings.Fields(string(listed)) {
		if strings.HasPrefix(pkg, product) {
			ours = append(ours, strings.TrimPrefix(pkg, product))
		}
	}
	require.Equal(t, []string{"test/chaos/history", "test/chaos/checker"}, ours)
}
