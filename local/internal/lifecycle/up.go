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
	// operatorNamespace and operatorUser are those of the chart's service account where it is installed by its own name.
	operatorNamespace = "muster-system"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":muster-operator"
)

// Options say what to bring up.
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
	// OperatorPause is the longest before one that keeps dying is started again; 0 for the default.
	OperatorPause time.Duration
	// Verbosity of the components' logs, as klog's -v.
	Verbosity int
	// Out gets one line for each step reached.
	Out io.Writer
}

// Up brings the cluster up, says so, and keeps it up until ctx ends or a part
// of it dies by itself, which is the error. Nothing is left behind either way.
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
	// Deferred first and so run last: who waits for the directory finds
	// nothing of this cluster any more.
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
		return unlessAsked(ctx, err)
	}
	defer plane.Stop()
	kubeconfig := dir.Path("kubeconfig")
	if err := plane.WriteKubeconfig(kubeconfig, "muster-admin", "system:masters"); err != nil {
		return err
	}
	stop, err := startRest(ctx, o, plane, dir, out)
	defer stop()
	if err != nil {
		return unlessAsked(ctx, err)
	}
	out.ready(kubeconfig)

	select {
	case <-ctx.Done():
		return nil
	case err := <-plane.Died():
		return err
	}
}

// startRest starts what needs no more than the API: the controllers, the nodes
// and the operator, side by side, since each mostly waits. stop ends what was
// started, be there an error or not; the controllers end with the plane.
func startRest(ctx context.Context, o Options, plane *controlplane.ControlPlane, dir *statedir.Dir, out *report) (stop func(), err error) {
	// How pods reach the operator.
	var doors []netip.AddrPort
	if o.Operator != "" {
		rendezvous, err := rendezvousAddress(dir)
		if err != nil {
			return func() {}, err
		}
		doors = append(doors, rendezvous)
	}
	var stopNodes func()
	var operator *operatorproc.Operator
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return plane.RunControllers(ctx) })
	all.Go(func() (err error) {
		stopNodes, err = startNodes(ctx, o.Nodes, doors, plane, dir, out)
		return err
	})
	if o.Operator != "" {
		all.Go(func() (err error) {
			operator, err = startOperator(ctx, o, doors[0], plane, dir, out)
			return err
		})
	}
	err = all.Wait()
	return func() {
		// First who gives orders, then who carries them out.
		if operator != nil {
			operator.Stop()
		}
		if stopNodes != nil {
			stopNodes()
		}
	}, err
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

func startOperator(ctx context.Context, o Options, rendezvous netip.AddrPort, plane *controlplane.ControlPlane, dir *statedir.Dir, out *report) (*operatorproc.Operator, error) {
	// It has the rights that the chart gives to its service account, and no more: they are granted by an administrator, who
	// also installs the APIs.
	kubeconfig := dir.Path("operator.kubeconfig")
	if err := plane.WriteKubeconfig(kubeconfig, operatorUser, "system:serviceaccounts", "system:serviceaccounts:"+operatorNamespace); err != nil {
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

// rendezvousAddress is where the operator is to serve the agents in pods: they are told it
// once, so it stays the same as long as the state does.
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

// unlessAsked turns the error of a start that was asked to stop into none.
func unlessAsked(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
