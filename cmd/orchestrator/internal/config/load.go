package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

const (
	envPrefix = "HOLDFAST_"
	// keyDelim separates the levels of a key inside koanf. No job type contains
	// it, so names with dots stay whole.
	keyDelim = "\x1f"
	// DefaultFile is read when you name no file and it exists.
	DefaultFile = "config.yaml"
)

// The variables of the commands that call the API. They look like configuration
// keys but are not.
const (
	EnvServer   = envPrefix + "SERVER"
	EnvToken    = envPrefix + "TOKEN"
	EnvUser     = envPrefix + "USER"
	EnvPassword = envPrefix + "PASSWORD"
)

// Sources says where the configuration comes from. Sets override the
// environment, which overrides the file.
type Sources struct {
	// File is the configuration file; empty means DefaultFile if it exists.
	File string
	// Environ is the environment, as os.Environ returns it.
	Environ []string
	// Sets are "key.path=value".
	Sets []string
}

// Load reads, merges and checks the configuration. Its errors name the key.
func Load(from Sources) (Config, error) {
	cfg := Defaults()
	tree := koanf.New(keyDelim)
	if err := from.readFile(&cfg, tree); err != nil {
		return cfg, err
	}
	if err := from.readEnvironment(tree); err != nil {
		return cfg, err
	}
	if err := from.readSets(tree); err != nil {
		return cfg, err
	}
	cfg.HasLimits, cfg.HasSchedules = tree.Exists("limits"), tree.Exists("schedules")
	err := tree.UnmarshalWithConf("", &cfg, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		ErrorUnused: true, DecodeHook: decodeHooks(),
	}})
	if err != nil {
		return cfg, fmt.Errorf("configuration: %w", withoutHeadline(err))
	}
	if err := cfg.finish(from.Environ); err != nil {
		return cfg, fmt.Errorf("configuration: %w", err)
	}
	return cfg, nil
}

func (from Sources) readFile(cfg *Config, tree *koanf.Koanf) error {
	path := from.File
	if path == "" {
		if _, err := os.Stat(DefaultFile); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		path = DefaultFile
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("configuration file: %w", err)
	}
	cfg.Source = absolute
	content := koanf.New(keyDelim)
	if err := content.Load(file.Provider(path), yaml.Parser()); err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	raw := content.Raw()
	if err := checkTree(raw, nil); err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	cfg.HasPlugins = raw["plugins"] != nil
	raw["plugins"] = byIndex(raw["plugins"])
	if security, ok := raw["security"].(map[string]any); ok {
		security["tokens"] = byIndex(security["tokens"])
	}
	if err := tree.Load(confmap.Provider(raw, ""), nil); err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	return nil
}

// byIndex turns a list into a map by index, so that a later source can set a
// part of an item. listFromIndexes reverses it.
func byIndex(list any) any {
	items, ok := list.([]any)
	if !ok {
		return list
	}
	indexed := map[string]any{}
	for i, item := range items {
		indexed[strconv.Itoa(i)] = item
	}
	return indexed
}

func (from Sources) readEnvironment(tree *koanf.Koanf) error {
	var wrong error
	provider := env.Provider(keyDelim, env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return from.Environ },
		TransformFunc: func(name, value string) (string, any) {
			if isForeign(name) {
				return "", nil
			}
			asked := key(strings.Split(strings.TrimPrefix(name, envPrefix), "__"))
			located, err := settable(asked)
			if err != nil {
				_, err = settable(asked.lower())
				wrong = errors.Join(wrong, fmt.Errorf("environment variable %s: %w", name, err))
				return "", nil
			}
			return strings.Join(located, keyDelim), value
		},
	})
	if err := tree.Load(provider, nil); err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	return wrong
}

// isForeign reports whether a variable with our prefix is not configuration: one
// for tests or for commands that call the API, or the cookie that a plugin finds
// in its environment.
func isForeign(name string) bool {
	switch name {
	case envPrefix + "HANDLER", EnvServer, EnvToken, EnvUser, EnvPassword:
		return true
	}
	return strings.HasPrefix(name, envPrefix+"TEST_") || strings.HasPrefix(name, envPrefix+"JAEGER_")
}

func (from Sources) readSets(tree *koanf.Koanf) error {
	flat := map[string]any{}
	for _, set := range from.Sets {
		name, value, found := strings.Cut(set, "=")
		if !found {
			return fmt.Errorf("--set %s: write key.path=value", set)
		}
		located, err := settable(parseKey(name))
		if err != nil {
			return fmt.Errorf("--set %s: %w", name, err)
		}
		flat[strings.Join(located, keyDelim)] = value
	}
	if err := tree.Load(confmap.Provider(flat, keyDelim), nil); err != nil {
		return fmt.Errorf("--set: %w", err)
	}
	return nil
}
