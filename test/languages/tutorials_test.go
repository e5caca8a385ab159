package languages

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// aFile is a file that a tutorial tells its reader to save.
var aFile = regexp.MustCompile("(?s)Save this as `([^`\n]+)`:\n\n```\\w+\n(.*?)```")

// Every tutorial must work as written. The test saves its files and runs its jobs.
func TestTheTutorialsWork(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		dir, program, test := t.TempDir(), "handler.py", []string{"-m", "unittest"}
		if l.name == "node" {
			program, test = "main.js", []string{"--test"}
			project, err := nodeProject(filepath.Join(dir, "project"), "../../examples/handlers/node/node_modules")
			require.NoError(t, err)
			dir = filepath.Dir(project.example)
		}
		text, err := os.ReadFile("../../docs/tutorial/" + l.name + ".md")
		require.NoError(t, err)
		saved := aFile.FindAllStringSubmatch(string(text), -1)
		require.Len(t, saved, 3)
		for _, file := range saved {
			require.NoError(t, os.WriteFile(filepath.Join(dir, file[1]), []byte(file[2]), 0o755))
		}
		program = filepath.Join(dir, program)
		run(t, dir, l.interpreter, test...)

		o := orchestrator(t, l, program, pgtest.URL(t))
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		defer cancel()
		_, err = o.Start(ctx)
		require.NoError(t, err)
		id := rigtest.Submit(t, o, rig.Submission{JobType: "PRINT", Payload: map[string]any{"to": "Ada", "copies": 3}})
		done, err := o.Await(ctx, id, "COMPLETED")
		require.NoError(t, err)
		require.JSONEq(t, `{"pages":3}`, string(done.Result))
		_, err = o.Submit(ctx, rig.Submission{JobType: "PRINT", Payload: map[string]any{"to": 7}})
		require.ErrorContains(t, err, "422")
		id = rigtest.Submit(t, o, rig.Submission{JobType: "PRINT", Payload: map[string]any{"to": "nobody"}})
		_, err = o.Await(ctx, id, "FAILED")
		require.NoError(t, err)
		require.NoError(t, o.ShutDown(ctx))
	})
}
