package controlplane

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

func TestAComponentThatEndsByItselfIsNamedWithItsLog(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"with an error", errors.New("lost its database"),
			"kube-thing ended: lost its database; its log is /logs/kube-thing.log"},
		{"without one", nil, "kube-thing ended: it returned without an error; its log is /logs/kube-thing.log"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &ControlPlane{died: make(chan error, 1)}
			p.run("kube-thing", fakeLog(), func(context.Context) error { return test.err })
			if got := <-p.Died(); got.Error() != test.want {
				t.Errorf("Died = %q, want %q", got, test.want)
			}
		})
	}
}

func TestAComponentThatWasStoppedHasNotDied(t *testing.T) {
	p := &ControlPlane{died: make(chan error, 1)}
	p.run("kube-thing", fakeLog(), func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("finished without leader elect") // the message of kube-scheduler
	})
	p.Stop()
	select {
	case err := <-p.Died():
		t.Errorf("a stopped component is reported as dead: %v", err)
	default:
	}
}

func TestADeathDuringTheStartEndsTheStart(t *testing.T) {
	p := &ControlPlane{died: make(chan error, 1)}
	died := errors.New("kube-thing ended")
	p.died <- died
	err := p.await(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, died) {
		t.Errorf("await = %v, want the death", err)
	}
}

func TestLogsGoToTheComponentsOwnFiles(t *testing.T) {
	dir := t.TempDir()
	l, err := openLogs(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.scheduler.logger.Info("from the scheduler")
	klog.InfoS("from anywhere")
	klog.V(3).Info("of no interest")
	l.close()
	klog.InfoS("too late, and harmless")

	for name, want := range map[string]string{"kube-scheduler.log": "from the scheduler",
		"kube-apiserver.log": "from anywhere"} {
		content := readFile(t, filepath.Join(dir, name))
		if !strings.Contains(content, want) || strings.Count(content, "\n") != 1 {
			t.Errorf("%s has %q, want one line with %q", name, content, want)
		}
	}
}

func fakeLog() *logFile {
	return &logFile{path: "/logs/kube-thing.log", logger: klog.Background()}
}
