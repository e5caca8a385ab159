package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// initialise makes the cluster unless it exists. initdb works in a directory
// beside and the result is renamed, so that a cluster is whole or absent.
func (h home) initialise(ctx context.Context, installed installation, ephemeral bool) error {
	if h.hasCluster() {
		return nil
	}
	if err := h.removeRemains(); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(h.dir, draftPrefix)
	if err != nil {
		return fmt.Errorf("make the cluster: %w", err)
	}
	if err := h.owner.give(draft); err != nil {
		return err
	}
	args := []string{
		"-D", draft, "-U", userName, "-E", "UTF8", "--no-locale",
		"--auth-local=trust", "--auth-host=reject", "--no-instructions",
	}
	if ephemeral {
		args = append(args, "--no-sync")
	}
	if _, err := outputOf(ctx, childOf(h, filepath.Join(installed.dir, "initdb"), args, syscall.SIGKILL)); err != nil {
		return errors.Join(fmt.Errorf("make the cluster: %w", err), os.RemoveAll(draft))
	}
	if err := os.Rename(draft, h.data()); err != nil {
		return errors.Join(fmt.Errorf("make the cluster: %w", err), os.RemoveAll(draft))
	}
	return syncDir(h.dir)
}

const draftPrefix = "initdb-"

// removeRemains deletes what an initdb left behind that was killed.
func (h home) removeRemains() error {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return fmt.Errorf("look into the data directory: %w", err)
	}
	for _, e := range entries {
		if ok, _ := filepath.Match(draftPrefix+"*", e.Name()); !ok {
			continue
		}
		if err := os.RemoveAll(filepath.Join(h.dir, e.Name())); err != nil {
			return fmt.Errorf("remove an unfinished cluster: %w", err)
		}
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync the data directory: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync the data directory: %w", err)
	}
	return nil
}

// settings suit a small machine that PostgreSQL shares with the orchestrator
// and its handlers; docs/how-to/postgresql.md tells what each is for. Everything about
// durability is left at PostgreSQL's defaults, which are safe.
var settings = map[string]string{
	"shared_buffers":           "256MB",
	"max_connections":          "100",
	"max_wal_size":             "2GB",
	"checkpoint_timeout":       "15min",
	"wal_buffers":              "16MB",
	"jit":                      "off", // short statements only
	"autovacuum_naptime":       "5s",  // the to-do lists turn over quickly
	"timezone":                 "UTC",
	"log_timezone":             "UTC",
	"lc_messages":              "C", // the log's severities are read
	"log_line_prefix":          "",
	"log_destination":          "stderr",
	"logging_collector":        "off",
	"log_error_verbosity":      "terse", // details hold values of rows
	"log_checkpoints":          "off",
	"unix_socket_permissions":  "0700",
	"shared_preload_libraries": "",
}

// ephemeral lets a test's server forget everything in a crash.
var ephemeral = map[string]string{
	"shared_buffers":     "128MB",
	"fsync":              "off",
	"synchronous_commit": "off",
	"full_page_writes":   "off",
	"max_wal_size":       "1GB",
}

// ownerSetting tells others which process started the server.
const ownerSetting = "holdfast.owner"

// arguments are the settings as command-line arguments. They win over the
// configuration file, so that an older cluster has them too. fitted suits the
// machine and the installation; access is how the server is reached, which
// nobody can override.
func arguments(cfg Config, fitted, access map[string]string) []string {
	all := map[string]string{}
	maps.Copy(all, settings)
	maps.Copy(all, fitted)
	if cfg.Ephemeral {
		maps.Copy(all, ephemeral)
	}
	maps.Copy(all, cfg.Settings)
	maps.Copy(all, access)
	all[ownerSetting] = strconv.Itoa(os.Getpid())
	var args []string
	for name, value := range all {
		args = append(args, name+"="+value)
	}
	slices.Sort(args)
	withFlags := make([]string, 0, 2*len(args))
	for _, arg := range args {
		withFlags = append(withFlags, "-c", arg)
	}
	return withFlags
}
