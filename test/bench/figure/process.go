package figure

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tick is the unit of CPU time in /proc, the same on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// Process is the id of a running process.
type Process int

// ProcessOf returns the process whose id is in the file.
func ProcessOf(t testing.TB, file string) Process {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatalf("reading a process id from %s: %v", file, err)
	}
	return Process(id)
}

// CPU returns the CPU time that the process has used so far, in user and kernel mode.
func (p Process) CPU(t testing.TB) time.Duration {
	t.Helper()
	stat := p.read(t, "stat")
	// The second field is the program's name in parentheses, which may contain spaces and parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// Resident returns the resident memory of the process in bytes.
func (p Process) Resident(t testing.TB) int64 { t.Helper(); return p.status(t, "VmRSS:") }

// Peak returns the largest resident memory that the process has had, in bytes.
func (p Process) Peak(t testing.TB) int64 { t.Helper(); return p.status(t, "VmHWM:") }

func (p Process) status(t testing.TB, key string) int64 {
	t.Helper()
	for line := range strings.Lines(string(p.read(t, "status"))) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			kibibytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kibibytes << 10
		}
	}
	t.Fatalf("the status file of process %d has no %s", p, key)
	return 0
}

func (p Process) read(t testing.TB, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(int(p)), file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
