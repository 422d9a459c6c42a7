package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// TestCancellationsAreNoErrors: what ends because the operator ends is in the debug log, without a stack trace.
func TestCancellationsAreNoErrors(t *testing.T) {
	cancelled, broken := fmt.Errorf("change Job a/b: %w", context.Canceled), errors.New("it is broken")
	for _, test := range []struct {
		name  string
		level string
		err   error
		want  string
	}{
		{"cancelled", "info", cancelled, ""},
		{"cancelled, debug", "debug", cancelled, `{"level":"debug",`},
		{"failed", "info", broken, `{"level":"error",`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var logs zap.Options
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			logs.BindFlags(flags)
			if err := flags.Parse([]string{"--zap-log-level=" + test.level}); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			log := newLogger(zap.UseFlagOptions(&logs), zap.WriteTo(&out)).WithName("jobs").WithValues("job", "a/b")
			log.Error(test.err, "Reconciler error", "attempt", 2)
			got := out.String()
			if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
				t.Fatalf("logged %q, want a line that begins with %q", got, test.want)
			}
			if got == "" {
				return
			}
			for _, part := range []string{`"logger":"jobs"`, `"job":"a/b"`, `"attempt":2`, test.err.Error()} {
				if !strings.Contains(got, part) {
					t.Errorf("logged %q, want it to contain %q", got, part)
				}
			}
			if traced := strings.Contains(got, "stacktrace"); traced != (test.err == broken) {
				t.Errorf("logged %q, want a stack trace with errors only", got)
			}
			if strings.Contains(got, "cancellations") {
				t.Errorf("logged %q, want the stack trace to begin at the caller", got)
			}
		})
	}
}
