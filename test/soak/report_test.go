package soak

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// report writes what it takes to find the cause of a failure to the folder of the test's artifacts, beside the
// decision logs: the journal, and of each accused job all its states, what is said of it, and its events.
func (r *round) report() {
	folder := r.ArtifactDir()
	r.journal.mu.Lock()
	entries, accused := slices.Clone(r.journal.entries), slices.Sorted(maps.Keys(r.journal.accused))
	r.journal.mu.Unlock()
	var lines strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&lines, e)
	}
	r.write(folder, "journal.txt", lines.String())
	for _, name := range accused {
		var history strings.Builder
		fmt.Fprintf(&history, "%s\n%s\n%s\n", r.explanation(name), r.explanation(name, "-o", "yaml"), r.eventsOf(name))
		for _, e := range entries {
			switch {
			case e.object != nil && jobOf(e.object) == name:
				fmt.Fprintf(&history, "---\n# %s\n%s", e, manifest(e.object))
			case e.object == nil && strings.Contains(e.note, name):
				fmt.Fprintf(&history, "---\n# %s\n", e)
			}
		}
		r.write(folder, name+".yaml", history.String())
	}
	for i, o := range r.operators {
		o.End(syscall.SIGTERM)
		r.write(folder, fmt.Sprintf("operator-%d.log", i), o.Log())
	}
	r.Logf("what happened is in %s: journal.txt, %v, decisions-*.log (read them with muster replay)", folder, accused)
}

func (r *round) write(folder, name, text string) {
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		r.Error(err)
	}
}

// manifest returns the YAML of an object, without its managed fields.
func manifest(o client.Object) string {
	o = o.DeepCopyObject().(client.Object)
	o.SetManagedFields(nil)
	text, err := yaml.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// eventsOf returns the events of a job and its objects, as comments.
func (r *round) eventsOf(name string) string {
	var events corev1.EventList
	if err := r.Client.List(context.Background(), &events, client.InNamespace(r.Namespace)); err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, e := range events.Items {
		if strings.Contains(e.InvolvedObject.Name, name) {
			fmt.Fprintf(&out, "# %s %s %s %s: %s\n", e.LastTimestamp.Format(clockFormat), e.InvolvedObject.Kind,
				e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	return out.String()
}
