package machine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// startKubelet starts the kubelet. It reserves no disk or memory and has no eviction thresholds, because other
// programs use the machine too.
func (n *node) startKubelet(ctx context.Context) error {
	certificate, key, err := n.servingCertificate(ctx)
	if err != nil {
		return err
	}
	authority, err := n.authority(ctx)
	if err != nil {
		return err
	}
	config, err := n.write("kubelet.yaml", fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %q}}
authorization: {mode: Webhook}
tlsCertFile: %q
tlsPrivateKeyFile: %q
containerRuntimeEndpoint: unix://%s
cgroupDriver: cgroupfs
cgroupRoot: /%s
failCgroupV1: false
failSwapOn: false
resolvConf: ""
clusterDNS: [%s]
clusterDomain: cluster.local
podLogsDir: /var/log/pods
volumePluginDir: %s/volumeplugins
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%"}
`, authority, certificate, key, containerdSocket, os.Getenv(cgroupVariable), gateway, n.dir))
	if err != nil {
		return err
	}
	program, err := binary("muster-node")
	if err != nil {
		return err
	}
	return n.run("kubelet", program, "--config", config, "--kubeconfig", n.cluster.Kubeconfig,
		"--root-dir", n.dir+"/kubelet", "--hostname-override", Name, "--node-ip", gateway)
}

// authority writes the CA certificate of the cluster to a file.
func (n *node) authority(ctx context.Context) (path string, err error) {
	authentication, err := n.clients.CoreV1().ConfigMaps("kube-system").Get(ctx, "extension-apiserver-authentication",
		metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the CA of clients: %w", err)
	}
	return n.write("authority.crt", authentication.Data["client-ca-file"])
}

// servingCertificate requests the certificate with which the kubelet serves logs, as the node itself would, and
// approves the request as an administrator.
func (n *node) servingCertificate(ctx context.Context) (certificate, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("generating a key: %w", err)
	}
	user := "system:node:" + Name
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: user, Organization: []string{"system:nodes"}},
		DNSNames:    []string{Name},
		IPAddresses: []net.IP{net.ParseIP(gateway)},
	}, private)
	if err != nil {
		return "", "", fmt.Errorf("encoding a certificate request: %w", err)
	}
	config := rest.CopyConfig(n.cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:nodes", "system:masters"}}
	asNode, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", "", fmt.Errorf("creating a client: %w", err)
	}
	request, err := asNode.CertificatesV1().CertificateSigningRequests().Create(ctx,
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: Name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}),
				SignerName: certificatesv1.KubeletServingSignerName,
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
			},
		}, metav1.CreateOptions{})
	if err != nil {
		return "", "", fmt.Errorf("requesting a certificate: %w", err)
	}
	signed, err := n.approve(ctx, request)
	if err != nil {
		return "", "", err
	}
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", fmt.Errorf("encoding a key: %w", err)
	}
	if certificate, err = n.write("kubelet.crt", string(signed)); err != nil {
		return "", "", err
	}
	key, err = n.write("kubelet.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes})))
	return certificate, key, err
}

// approve approves a request, waits for the certificate, and returns it.
func (n *node) approve(ctx context.Context, request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	requests := n.clients.CertificatesV1().CertificateSigningRequests()
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
			Message: "the request of the tests' own node"}}
	request, err := requests.UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("approving a certificate: %w", err)
	}
	events, err := requests.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", request.Name).String(),
		ResourceVersion: request.ResourceVersion})
	if err != nil {
		return nil, fmt.Errorf("waiting for a certificate: %w", err)
	}
	defer events.Stop()
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return nil, fmt.Errorf("waiting for a certificate: the watch ended")
			}
			if seen, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok && len(seen.Status.Certificate) > 0 {
				return seen.Status.Certificate, nil
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for a certificate: %w", ctx.Err())
		}
	}
}
