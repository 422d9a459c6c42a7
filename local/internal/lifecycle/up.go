package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/musterhq/muster/local/internal/controlplane"
	"github.com/musterhq/muster/local/internal/statedir"
)

// Options say what to bring up.
type Options struct {
	// Dir is the state directory; empty for a temporary one whose database
	// does not sync to disk.
	Dir string
	// Port of the API server on loopback; 0 for a free one.
	Port int
	// Verbosity of the components' logs, as klog's -v.
	Verbosity int
	// Out gets one line for each step reached.
	Out io.Writer
}

// Up brings the cluster up, says so, and keeps it up until ctx ends or a part
// of it dies by itself, which is the error. Nothing is left behind either way.
func Up(ctx context.Context, o Options) (err error) {
	started := time.Now()
	step := func(format string, args ...any) {
		fmt.Fprintf(o.Out, format+" (%.1fs)\n", append(args, time.Since(started).Seconds())...)
	}
	listener, err := listen(o.Port)
	if err != nil {
		return err
	}
	dir, err := claim(o.Dir)
	if err != nil {
		listener.Close()
		return err
	}
	defer func() { err = errors.Join(err, dir.Release()) }()
	step("state is in %s", dir.Path())

	plane, err := controlplane.Start(ctx, controlplane.Config{
		Listener:  listener,
		EtcdDir:   dir.Etcd(),
		PKIDir:    dir.PKI(),
		LogsDir:   dir.Logs(),
		Durable:   !dir.Temporary(),
		Verbosity: o.Verbosity,
		Step:      step,
	})
	if err != nil {
		return stoppedOr(ctx, err)
	}
	defer plane.Stop()

	kubeconfig := dir.Path("kubeconfig")
	if err := plane.WriteKubeconfig(kubeconfig, "muster-admin", "system:masters"); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "ready in %.1fs: export KUBECONFIG=%s\n", time.Since(started).Seconds(), kubeconfig)

	select {
	case <-ctx.Done():
		fmt.Fprintln(o.Out, "stopping")
		return nil
	case err := <-plane.Died():
		return err
	}
}

// listen comes first: a taken port is the mistake made most often, and is
// then reported before anything is touched.
func listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d is taken by another program; choose another with --port, or 0 for a free one", port)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("port %d may only be used by root; choose one above 1023 with --port, or 0 for a free one", port)
	case err != nil:
		return nil, fmt.Errorf("listening on port %d: %w; choose another with --port, or 0 for a free one", port, err)
	}
	return listener, nil
}

func claim(path string) (*statedir.Dir, error) {
	if path == "" {
		return statedir.ClaimTemporary()
	}
	return statedir.Claim(path)
}

// stoppedOr turns the errors of a start that was asked to stop into none.
func stoppedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
