package testcluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// refusals returns the Refusals of the operator of the cluster in folder dir.
func refusals(dir string) error {
	log, err := os.Open(filepath.Join(dir, "logs", "operator.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is no operator
	}
	if err != nil {
		return fmt.Errorf("reading the operator's log: %w", err)
	}
	defer log.Close()
	return Refusals(log)
}

// Refusals returns an error with the lines of an operator's log that report a missing right. Its role is that of the
// chart, so the operator would lack that right in every cluster.
func Refusals(log io.Reader) error {
	var lines []string
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if what, is := refusal(scanner.Text()); is && !slices.Contains(lines, what) {
			lines = append(lines, what)
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading the operator's log: %w", err)
	}
	if len(lines) > 0 {
		return fmt.Errorf("the operator lacks rights; give them by a marker +kubebuilder:rbac beside the code, and make generate:\n%s",
			strings.Join(lines, "\n"))
	}
	return nil
}

// refusal returns what RBAC denied according to a line of JSON or text, such as: cannot list resource "secrets" in API
// group "". Denials by quotas and policies do not count.
func refusal(line string) (what string, is bool) {
	line = strings.ReplaceAll(line, `\"`, `"`)
	_, after, found := strings.Cut(line, `User "`)
	_, after, ended := strings.Cut(after, `" `)
	if !found || !ended || !strings.HasPrefix(after, "cannot ") {
		return "", false
	}
	what, _, _ = strings.Cut(after, " in the namespace ")
	what, _, _ = strings.Cut(what, " at the cluster scope")
	return what, true
}
