package execnode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/musterhq/muster/local/internal/execnode/process"
)

const (
	// streamIdleTimeout is the idle timeout of an exec or a forwarded port, as a kubelet's.
	streamIdleTimeout = 4 * time.Hour
	// streamCreationTimeout is the timeout for a client to open its streams.
	streamCreationTimeout = 30 * time.Second
	// headerTimeout keeps silent clients from holding connections.
	headerTimeout = 30 * time.Second
)

// server is the part of a kubelet's API for kubectl logs, exec and port-forward. It listens on the machine's loopback,
// for clients with a certificate of the cluster.
type server struct {
	node *Node
	http *http.Server
	port int
}

func serve(n *Node) (*server, error) {
	listener, err := net.Listen("tcp4", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("listening for the API server: %w", err)
	}
	s := &server{node: n, port: listener.Addr().(*net.TCPAddr).Port}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{container}", s.exec)
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{uid}/{container}", s.exec)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}", s.portForward)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}/{uid}", s.portForward)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("this node does not serve %s: it has logs, exec and port-forward", r.URL.Path),
			http.StatusNotImplemented)
	})
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{n.config.ServingCert}, MinVersion: tls.VersionTLS12,
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: n.config.ClientCAs,
		},
	}
	go s.http.ServeTLS(listener, "", "")
	return s, nil
}

// close ends the server and all that it serves.
func (s *server) close() { s.http.Close() }

// pod returns the pod of a request; if there is none it responds with an error and returns nil.
func (s *server) pod(w http.ResponseWriter, r *http.Request) *corev1.Pod {
	namespace, name := r.PathValue("namespace"), r.PathValue("pod")
	pod, ok := s.node.kubelet.podStore.GetPodByName(namespace, name)
	if !ok {
		http.Error(w, fmt.Sprintf("pod %s/%s does not run on this node", namespace, name), http.StatusNotFound)
		return nil
	}
	return pod
}

// exec runs a command in a container.
func (s *server) exec(w http.ResponseWriter, r *http.Request) {
	pod := s.pod(w, r)
	if pod == nil {
		return
	}
	id, err := s.runningContainer(pod, r.PathValue("container"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, executor{s.node.kubelet.processes}, pod.Name, string(pod.UID), id,
		r.URL.Query()["command"], options, streamIdleTimeout, streamCreationTimeout,
		remotecommand.SupportedStreamingProtocols)
}

// runningContainer returns the ID of a container that runs.
func (s *server) runningContainer(pod *corev1.Pod, name string) (string, error) {
	status, ok := s.node.kubelet.status.GetPodStatus(pod.UID)
	if !ok {
		status = pod.Status
	}
	container, ok := findContainer(status, name)
	if !ok {
		return "", fmt.Errorf("container %q not found in pod %q", name, pod.Name)
	}
	if container.State.Running == nil {
		return "", fmt.Errorf("container %q of pod %q does not run", name, pod.Name)
	}
	return idOf(container.ContainerID), nil
}

// executor runs commands for streams. The container is its ID.
type executor struct{ runtime *process.Runtime }

func (e executor) ExecInContainer(ctx context.Context, _, _, container string, command []string, in io.Reader,
	out, errs io.WriteCloser, terminal bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	options := process.ExecOptions{Command: command, Stdin: in, Terminal: terminal}
	if out != nil {
		options.Stdout = out
	}
	if errs != nil {
		options.Stderr = errs
	}
	if terminal {
		sizes := make(chan process.Size)
		options.Sizes = sizes
		go func() {
			defer close(sizes)
			for size := range resize {
				select {
				case sizes <- process.Size{Width: size.Width, Height: size.Height}:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	code, err := e.runtime.Run(ctx, container, options)
	if err != nil {
		return err
	}
	if code != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
	}
	return nil
}

// portForward connects a client to ports of a pod.
func (s *server) portForward(w http.ResponseWriter, r *http.Request) {
	pod := s.pod(w, r)
	if pod == nil {
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwarder{s.node}, pod.Name, string(pod.UID), options, streamIdleTimeout,
		streamCreationTimeout, []string{portforward.ProtocolV1Name})
}

type forwarder struct{ node *Node }

var errNoNetwork = errors.New("the pod has no network: it does not run")

// PortForward reaches what listens in the pod, on its loopback too.
func (f forwarder) PortForward(ctx context.Context, _, uid string, port int32, stream io.ReadWriteCloser) error {
	network, ok := f.node.kubelet.processes.NetworkOf(uid)
	if !ok {
		return errNoNetwork
	}
	to := netip.AddrPortFrom(netip.MustParseAddr(loopback), uint16(port))
	var conn net.Conn
	var err error
	if own, ok := network.(*podNetwork); ok {
		conn, err = own.Dial(ctx, to)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp4", to.String())
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	join(conn, stream)
	return nil
}
