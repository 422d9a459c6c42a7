package testcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyTheKnownCrashIsRetried(t *testing.T) {
	for name, tc := range map[string]struct {
		says   string
		starts int
	}{
		"crash of kube-openapi": {"goroutine 28071 [running]:\nk8s.io/kube-openapi/pkg/cached.(*Atomic[...]).Get(0x226c0?)", 2},
		"any other crash":       {"goroutine 1 [running]:\nmain.main()", 1},
	} {
		t.Run(name, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), "crashes")
			script := "#!/bin/sh\necho 'panic: runtime error' >&2\necho '" + strings.ReplaceAll(tc.says, "\n", "' >&2\necho '") +
				"' >&2\nexit 2\n"
			if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			starts := 0
			_, err := retryKnownCrash(func() (*process, error) {
				starts++
				started, _, err := startProcess(t.Context(), binary, nil)
				return started, err
			})
			if err == nil || starts != tc.starts {
				t.Errorf("the server was started %d times with error %v, want %d times and an error", starts, err, tc.starts)
			}
		})
	}
}
