package testcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingRightsOfTheOperatorAreDetected(t *testing.T) {
	const (
		missingRight = `{"error":"secrets is forbidden: User \"system:serviceaccount:a:b\" cannot list resource \"secrets\" in API group \"\" at the cluster scope"}`
		quota        = `{"error":"pods \"a\" is forbidden: exceeded quota: compute, requested: pods=1"}`
	)
	dir := t.TempDir()
	if err := refusals(dir); err != nil {
		t.Errorf("without an operator: got error %v, want none", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	say := func(lines ...string) {
		if err := os.WriteFile(filepath.Join(dir, "logs", "operator.log"), []byte(strings.Join(lines, "\n")+"\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	say(quota)
	if err := refusals(dir); err != nil {
		t.Errorf("a refusal by a quota: got error %v, want none", err)
	}
	say(quota, missingRight)
	if err := refusals(dir); err == nil || !strings.Contains(err.Error(), "cannot list") ||
		strings.Contains(err.Error(), "exceeded") {
		t.Errorf("a missing right: got error %v, want one that names it", err)
	}
}
