package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/local/internal/atomicfile"
	"github.com/musterhq/muster/local/internal/controlplane"
	"github.com/musterhq/muster/local/internal/freeport"
	"github.com/musterhq/muster/local/internal/operatorproc"
	"github.com/musterhq/muster/local/internal/statedir"
)

const (
	// operatorNamespace and operatorUser are the namespace and the user of the service account of a chart that is
	// installed by its own name.
	operatorNamespace = "muster-system"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":muster-operator"
)

// Options configure Up.
type Options struct {
	// Dir is the state directory; empty for a temporary one whose database
	// does not sync to disk.
	Dir string
	// Port of the API server on loopback; 0 for a free one.
	Port int
	// Nodes says which nodes the cluster has.
	Nodes Nodes
	// Operator is the path of the operator's binary; empty for none.
	Operator string
	// OperatorConfiguration is the path of its configuration file; empty for
	// none.
	OperatorConfiguration string
	// OperatorPause is the maximum backoff between restarts of an operator that keeps dying; 0 for the default.
	OperatorPause time.Duration
	// Verbosity of the components' logs, as klog's -v.
	Verbosity int
	// Out receives one line for each step.
	Out io.Writer
}

// Up starts a cluster, reports it, and keeps it running until ctx ends or a part of the cluster dies, which is an
// error. In either case it stops everything before it returns.
func Up(ctx context.Context, o Options) (err error) {
	out := newReport(o.Out)
	defer context.AfterFunc(ctx, func() { out.line("stopping") })()
	listener, err := listen(o.Port)
	if err != nil {
		return err
	}
	dir, err := claim(o.Dir)
	if err != nil {
		listener.Close()
		return err
	}
	// Deferred first and so run last: a process that waits for the directory finds nothing of this cluster running.
	defer func() { err = errors.Join(err, dir.Release()) }()
	out.step("state is in %s", dir.Path())

	plane, err := controlplane.Start(ctx, controlplane.Config{
		Listener:  listener,
		EtcdDir:   dir.Etcd(),
		PKIDir:    dir.PKI(),
		LogsDir:   dir.Logs(),
		Durable:   !dir.Temporary(),
		Verbosity: o.Verbosity,
		Step:      out.step,
	})
	if err != nil {
		return ignoreCancelled(ctx, err)
	}
	defer plane.Stop()
	kubeconfig := dir.Path("kubeconfig")
	if err := plane.WriteKubeconfig(kubeconfig, "muster-admin", "system:masters"); err != nil {
		return err
	}
	stop, err := startRest(ctx, o, plane, dir, out)
	defer stop()
	if err != nil {
		return ignoreCancelled(ctx, err)
	}
	out.ready(kubeconfig)

	select {
	case <-ctx.Done():
		return nil
	case err := <-plane.Died():
		return err
	}
}

// startRest starts what needs only the API: the controllers, the nodes and the operator, concurrently, since each
// mostly waits. stop stops what was started, also after an error; the controllers stop with the plane.
func startRest(ctx context.Context, o Options, plane *controlplane.ControlPlane, dir *statedir.Dir,
	out *report) (stop func(), err error) {
	// Addresses at which pods reach the operator.
	var endpoints []netip.AddrPort
	if o.Operator != "" {
		rendezvous, err := rendezvousAddress(dir)
		if err != nil {
			return func() {}, err
		}
		endpoints = append(endpoints, rendezvous)
	}
	var stopNodes func()
	var operator *operatorproc.Operator
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return plane.RunControllers(ctx) })
	all.Go(func() (err error) {
		stopNodes, err = startNodes(ctx, o.Nodes, endpoints, plane, dir, out)
		return err
	})
	if o.Operator != "" {
		all.Go(func() (err error) {
			operator, err = startOperator(ctx, o, endpoints[0], plane, dir, out)
			return err
		})
	}
	err = all.Wait()
	return func() {
		// The operator before the nodes: first what makes pods, then what runs them.
		if operator != nil {
			operator.Stop()
		}
		if stopNodes != nil {
			stopNodes()
		}
	}, err
}

// listen runs first: a port in use is the most common error, and is reported before anything is touched.
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

func startOperator(ctx context.Context, o Options, rendezvous netip.AddrPort, plane *controlplane.ControlPlane,
	dir *statedir.Dir, out *report) (*operatorproc.Operator, error) {
	// The operator has the rights of the chart's service account and no more: an administrator grants them and installs
	// the APIs.
	kubeconfig := dir.Path("operator.kubeconfig")
	if err := plane.WriteKubeconfig(kubeconfig, operatorUser, "system:serviceaccounts",
		"system:serviceaccounts:"+operatorNamespace); err != nil {
		return nil, err
	}
	if err := operatorproc.Install(ctx, operatorproc.Installation{
		Path:          o.Operator,
		Kubeconfig:    dir.Path("kubeconfig"),
		Configuration: o.OperatorConfiguration,
		Namespace:     operatorNamespace,
		User:          operatorUser,
	}); err != nil {
		return nil, err
	}
	if err := plane.AwaitRoles(ctx); err != nil {
		return nil, err
	}
	operator, err := operatorproc.Start(ctx, operatorproc.Config{
		Path:          o.Operator,
		Kubeconfig:    kubeconfig,
		Configuration: o.OperatorConfiguration,
		Namespace:     operatorNamespace,
		LogFile:       filepath.Join(dir.Logs(), "operator.log"),
		PIDFile:       dir.Path("operator.pid"),
		Rendezvous:    rendezvous.String(),
		LongestPause:  o.OperatorPause,
		Notify:        out.line,
	})
	if err != nil {
		return nil, err
	}
	out.step("operator is ready")
	return operator, nil
}

// rendezvousAddress returns where the operator serves the agents in pods. The pods keep it, so it is stored in the
// state directory.
func rendezvousAddress(dir *statedir.Dir) (netip.AddrPort, error) {
	file := dir.Path("rendezvous")
	if text, err := os.ReadFile(file); err == nil {
		if address, err := netip.ParseAddrPort(strings.TrimSpace(string(text))); err == nil {
			return address, nil
		}
	}
	address, err := freeport.OnLoopback()
	if err != nil {
		return netip.AddrPort{}, err
	}
	return address, atomicfile.Write(file, []byte(address.String()+"\n"))
}

// ignoreCancelled returns nil instead of the error of a start that was asked to stop.
func ignoreCancelled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
