package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// OneArgument requires exactly one argument.
func OneArgument(c *cobra.Command, args []string) error { return oneArgument(c, args) }

// oneArgument requires exactly one argument. It recognizes "--wait 30s", which must be
// written "--wait=30s".
func oneArgument(c *cobra.Command, args []string) error {
	if len(args) == 2 && c.Flags().Lookup("wait") != nil {
		if _, err := time.ParseDuration(args[1]); err == nil {
			return fmt.Errorf("write --wait=%s, with an equals sign", args[1])
		}
	}
	if err := atLeastOne(c, args); err != nil {
		return err
	}
	return atMost(1)(c, args)
}

// RefuseEmptyFlags returns an error for a flag with an empty value, which usually
// comes from an unset shell variable. It would count as not given.
func RefuseEmptyFlags(c *cobra.Command) error {
	var empty error
	c.Flags().Visit(func(f *pflag.Flag) {
		if empty == nil && isEmpty(f.Value) && f.Annotations[mayBeEmpty] == nil {
			empty = usage("--" + f.Name + " is empty; give it a value, or leave it out")
		}
	})
	return empty
}

// mayBeEmpty annotates flags that may be empty.
const mayBeEmpty = "may-be-empty"

// AllowEmpty makes RefuseEmptyFlags accept an empty flag.
func AllowEmpty(c *cobra.Command, flag string) {
	_ = c.Flags().SetAnnotation(flag, mayBeEmpty, []string{})
}

func isEmpty(value pflag.Value) bool {
	if list, ok := value.(pflag.SliceValue); ok {
		items := list.GetSlice()
		return len(items) == 0 || slices.Contains(items, "")
	}
	return value.String() == ""
}

// atMost allows up to n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return fmt.Errorf("the argument %q is not expected; usage: %s", args[n], c.UseLine())
		}
		return nil
	}
}

// NoArguments rejects arguments. Cobra's own function calls them unknown commands.
func NoArguments(c *cobra.Command, args []string) error { return atMost(0)(c, args) }

func atLeastOne(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s is missing; usage: %s", missing(c, 0), c.UseLine())
	}
	if n := slices.Index(args, ""); n >= 0 { // a variable of the shell that is not set
		return fmt.Errorf("%s is empty; usage: %s", missing(c, n), c.UseLine())
	}
	return nil
}

// missing returns the name of the nth argument; the last name is that of all that follow.
func missing(c *cobra.Command, n int) string {
	names := strings.Fields(c.Use)[1:]
	if len(names) == 0 {
		return "an argument"
	}
	return strings.Trim(names[min(n, len(names)-1)], "[].…")
}
