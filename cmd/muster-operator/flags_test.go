package main

import (
	"flag"
	"io"
	"strings"
	"testing"
)

// TestPositionalArgumentsAreRejected: flags after a positional argument would be ignored, as in `--leader-elect false`.
func TestPositionalArgumentsAreRejected(t *testing.T) {
	read := func(arguments ...string) (options, error) {
		set := flag.NewFlagSet("muster-operator", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		return readOptions(set, arguments)
	}
	for _, arguments := range [][]string{{"--leader-elect", "false", "--namespace", "ml"}, {"muster.yaml"},
		{"--config", "muster.yaml", "more"}} {
		if _, err := read(arguments...); err == nil || !strings.Contains(err.Error(), "unexpected argument") {
			t.Errorf("%q: got error %v, want an unexpected argument", arguments, err)
		}
	}
	if o, err := read("--leader-elect=false", "--namespace", "ml"); err != nil || o.leaderElect || o.namespace != "ml" {
		t.Errorf("flags only: got %+v, %v", o, err)
	}
}
