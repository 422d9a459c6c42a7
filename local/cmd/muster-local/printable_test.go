package main

import (
	"bytes"
	"fmt"
	"testing"
)

func TestPrintable(t *testing.T) {
	var out bytes.Buffer
	fmt.Fprintf(printable{&out}, "node \x1b[2J\u009b\u202e模 is ready\t(1.0s)\n")
	if want := "node \ufffd[2J\ufffd\ufffd模 is ready\t(1.0s)\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
