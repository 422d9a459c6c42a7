package genericjob

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/replicas"
)

func TestVariablesAreReplaced(t *testing.T) {
	plain := newJob().with("master", 1).with("worker", 4)
	served := newJob().with("master", 1).with("worker", 4).port("http", 2222).port("ssh", 22)
	for text, want := range map[string][2]string{
		"$(type)-$(rank)":           {"worker-2", "worker-2"},
		"$(replicas[worker])":       {"4", "4"},
		"$(replicas[ps])":           {"$(replicas[ps])", "$(replicas[ps])"},
		"$(service.worker[3].host)": {"$(service.worker[3].host)", "job-worker-3"},
		"$(service.master[0].host):$(service.port[http])": {"$(service.master[0].host):$(service.port[http])",
			"job-master-0:2222"},
		"$(service.worker[4].host)":     {"$(service.worker[4].host)", "$(service.worker[4].host)"},
		"$(service.worker[x].host)":     {"$(service.worker[x].host)", "$(service.worker[x].host)"},
		"$(service.worker.host)":        {"$(service.worker.host)", "$(service.worker.host)"},
		"$(service.port[ftp])":          {"$(service.port[ftp])", "$(service.port[ftp])"},
		"$(HOME) $(date) ${rank} $rank": {"$(HOME) $(date) ${rank} $rank", "$(HOME) $(date) ${rank} $rank"},
		"$$(rank) $(rank":               {"$$(rank) $(rank", "$$(rank) $(rank"},
		"$$$(rank)":                     {"$$2", "$$2"},
		"$(echo $(rank))":               {"$(echo 2)", "$(echo 2)"},
		"ünï $(rank)":                   {"ünï 2", "ünï 2"},
		"":                              {"", ""},
	} {
		for i, job := range []jobBuilder{plain, served} {
			v := variables{job: job.GenericJob, replica: &replicas.Replica{Group: "worker", Index: 2}}
			if got := v.expand(text); got != want[i] {
				t.Errorf("%q, with services=%v, is %q, want %q", text, i == 1, got, want[i])
			}
		}
	}
}

func TestVariablesAreReplacedInCommandArgsAndEnvOfEachContainer(t *testing.T) {
	job := newJob().with("worker", 3)
	of := func() corev1.Container {
		return corev1.Container{Image: "$(rank)", Command: []string{"$(rank)"}, Args: []string{"-r", "$(rank)"},
			Env: []corev1.EnvVar{{Name: "$(rank)", Value: "$(rank)"}}}
	}
	spec := corev1.PodSpec{Containers: []corev1.Container{of(), of()}, InitContainers: []corev1.Container{of()}}
	variables{job: job.GenericJob, replica: &replicas.Replica{Group: "worker", Index: 1}}.expandAll(&spec)
	want := corev1.Container{Image: "$(rank)", Command: []string{"1"}, Args: []string{"-r", "1"},
		Env: []corev1.EnvVar{{Name: "$(rank)", Value: "1"}}}
	same(t, "containers", corev1.PodSpec{Containers: []corev1.Container{want, want},
		InitContainers: []corev1.Container{want}}, spec)
}

// TestTextWithoutVariablesStaysAsItIs: whatever it is.
func TestTextWithoutVariablesStaysAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(
			`([$()\[\].a-z0-9ü]|\$\(|type|rank|replicas\[|service\.|\]\.host\)){0,20}`).Draw(t, "text")
		v := variables{job: newJob().with("worker", 3).GenericJob, replica: &replicas.Replica{Group: "worker", Index: 1}}
		got := v.expand(text)
		if !strings.Contains(text, "$(type)") && !strings.Contains(text, "$(rank)") && got != text {
			t.Fatalf("%q became %q", text, got)
		}
		if strings.Count(text, "$$") == 0 && (strings.Contains(got, "$(type)") || strings.Contains(got, "$(rank)")) {
			t.Fatalf("%q became %q, with a variable in it", text, got)
		}
	})
}

// TestTextOfOpeningsIsExpandedInLinearTime: a search to the end of the text for each of them would take half a minute.
func TestTextOfOpeningsIsExpandedInLinearTime(t *testing.T) {
	text := strings.Repeat("$(", 500_000) + "$(rank)"
	v := variables{job: newJob().with("worker", 3).GenericJob, replica: &replicas.Replica{Group: "worker", Index: 1}}
	began := time.Now()
	got := v.expand(text)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("a megabyte took %s, want some 10 ms", took)
	}
	if want := strings.TrimSuffix(text, "$(rank)") + "1"; got != want {
		t.Errorf("the text ends with %q, want %q", got[len(got)-10:], want[len(want)-10:])
	}
}
