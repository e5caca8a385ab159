package executable

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFileThatCannotBeLaunchedIsExplained(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	require.ErrorIs(t, Check(filepath.Join(dir, "missing")), os.ErrNotExist)
	require.EqualError(t, Check(dir), dir+" is not a file")
	plain := put("plain", "", 0o600)
	require.EqualError(t, Check(plain), plain+" is not executable")

	for path, says := range map[string]string{
		put("text", "hello", 0o700):              "it is no program for this machine",
		put("script", "#!/no/such/shell", 0o700): "such as the interpreter that a script names",
	} {
		require.NoError(t, Check(path))
		err := exec.CommandContext(t.Context(), path).Start()
		require.ErrorContains(t, ExplainStart(err), says)
	}
	require.NoError(t, ExplainStart(nil))
}
