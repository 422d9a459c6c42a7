package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/musterhq/muster/local/internal/atomicfile"
	"github.com/musterhq/muster/local/internal/pki"
)

// serviceRange is the range of cluster IPs; the API server's own service has
// the first address.
const serviceRange = "10.96.0.0/16"

var apiServiceIP = net.IPv4(10, 96, 0, 1)

// clusterDomain is the domain of the services' names.
const clusterDomain = "cluster.local"

// credentials are the files by which the components authenticate and trust each other.
type credentials struct {
	host string // host:port of the API server

	authority, frontProxy *pki.Authority
	// serving is the API server's; kubeletServing that of nodes run here.
	serving, kubeletServing pki.Pair
	// kubeletClient is the API server's identity towards nodes; frontProxyClient that towards aggregated APIs.
	kubeletClient, frontProxyClient pki.Pair
	serviceAccountKey               string

	schedulerKubeconfig, managerKubeconfig string
	admin                                  *rest.Config
	dir                                    string
}

func issueCredentials(dir, host string) (*credentials, error) {
	c := &credentials{host: host, dir: dir}
	var err error
	if c.authority, err = pki.LoadOrMakeAuthority(dir, "ca"); err != nil {
		return nil, err
	}
	if c.frontProxy, err = pki.LoadOrMakeAuthority(dir, "front-proxy-ca"); err != nil {
		return nil, err
	}
	if c.serviceAccountKey, err = pki.LoadOrMakeSigningKey(dir, "service-account"); err != nil {
		return nil, err
	}
	loopback := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if c.serving, err = c.authority.Server(dir, "kube-apiserver", []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + clusterDomain,
	}, append(loopback, apiServiceIP)); err != nil {
		return nil, err
	}
	if c.kubeletServing, err = c.authority.Server(dir, "kubelet", []string{"localhost"}, loopback); err != nil {
		return nil, err
	}
	if c.kubeletClient, err = c.authority.Client(dir, "kube-apiserver-kubelet-client",
		"kube-apiserver-kubelet-client", "system:masters"); err != nil {
		return nil, err
	}
	if c.frontProxyClient, err = c.frontProxy.Client(dir, "front-proxy-client", "front-proxy-client"); err != nil {
		return nil, err
	}
	return c, c.issueKubeconfigs()
}

func (c *credentials) issueKubeconfigs() error {
	c.schedulerKubeconfig = filepath.Join(c.dir, "kube-scheduler.kubeconfig")
	if err := c.writeKubeconfig(c.schedulerKubeconfig, "system:kube-scheduler"); err != nil {
		return err
	}
	c.managerKubeconfig = filepath.Join(c.dir, "kube-controller-manager.kubeconfig")
	if err := c.writeKubeconfig(c.managerKubeconfig, "system:kube-controller-manager"); err != nil {
		return err
	}
	admin := filepath.Join(c.dir, "admin.kubeconfig")
	if err := c.writeKubeconfig(admin, "muster-local", "system:masters"); err != nil {
		return err
	}
	var err error
	c.admin, err = clientcmd.BuildConfigFromFlags("", admin)
	return err
}

// WriteKubeconfig writes a self-contained kubeconfig, mode 0600, with a client certificate for the user and groups.
func (cp *ControlPlane) WriteKubeconfig(path, user string, groups ...string) error {
	return cp.credentials.writeKubeconfig(path, user, groups...)
}

func (c *credentials) writeKubeconfig(path, user string, groups ...string) error {
	content, err := c.kubeconfig(user, groups...)
	if err == nil {
		err = atomicfile.Write(path, content)
	}
	if err != nil {
		return fmt.Errorf("writing the kubeconfig %s: %w", path, err)
	}
	return nil
}

func (c *credentials) kubeconfig(user string, groups ...string) ([]byte, error) {
	scratch, err := os.MkdirTemp(c.dir, ".client-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	pair, err := c.authority.Client(scratch, "client", user, groups...)
	if err != nil {
		return nil, err
	}
	certificate, err := os.ReadFile(pair.CertFile)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(pair.KeyFile)
	if err != nil {
		return nil, err
	}
	const name = "muster"
	return clientcmd.Write(clientcmdapi.Config{
		CurrentContext: name,
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: "https://" + c.host,
			CertificateAuthorityData: c.authority.PEM()}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: certificate, ClientKeyData: key}},
		Contexts:  map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
	})
}

// KubeletServing returns the certificate with which a local node serves its kubelet API on loopback, and the CAs of its
// clients.
func (cp *ControlPlane) KubeletServing() (tls.Certificate, *x509.CertPool, error) {
	certificate, err := cp.credentials.kubeletServing.Load()
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("reading the nodes' serving certificate: %w", err)
	}
	return certificate, cp.credentials.authority.Pool(), nil
}

// ClusterDomain is the domain of the services' names.
func (cp *ControlPlane) ClusterDomain() string { return clusterDomain }
