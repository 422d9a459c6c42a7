package vcjob

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
)

func TestPluginSshMakesUpAKeyOnlyWhenTheSecretIsMade(t *testing.T) {
	job := newJob().with("worker", 1).plugin("ssh")
	got := see(t, job.Job, admitted("worker", 1), nil)
	planned := got.First[0].Object().(*corev1.Secret)
	if planned.Name != "job-ssh" || planned.Data[privateKeyFile] != nil {
		t.Errorf("the plan of Secret %s has a key", planned.Name)
	}
	for range 2 {
		secret := planned.DeepCopy()
		if err := makeKeys(client.Object(secret)); err != nil {
			t.Fatal(err)
		}
		kind, text, _ := strings.Cut(strings.TrimSpace(string(secret.Data[publicKeyFile])), " ")
		wire, err := base64.StdEncoding.DecodeString(text)
		block, _ := pem.Decode(secret.Data[privateKeyFile])
		if kind != "ssh-rsa" || err != nil || block == nil || block.Type != "RSA PRIVATE KEY" {
			t.Fatalf("public key %q: %v; private key %+v", secret.Data[publicKeyFile], err, block)
		}
		private, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		var fields [][]byte
		for len(wire) >= 4 {
			n := 4 + binary.BigEndian.Uint32(wire)
			fields, wire = append(fields, wire[4:n]), wire[n:]
		}
		if len(fields) != 3 || string(fields[0]) != "ssh-rsa" ||
			new(big.Int).SetBytes(fields[1]).Int64() != int64(private.E) ||
			new(big.Int).SetBytes(fields[2]).Cmp(private.N) != 0 || fields[2][0] >= 0x80 {
			t.Errorf("public key %x, want the numbers of the private one, neither negative", fields)
		}
	}
	pod := made(t, got, "job-worker-0")
	if m := pod.Spec.Containers[0].VolumeMounts; len(m) != 1 || m[0].MountPath != "/root/.ssh" {
		t.Errorf("mounts %v", m)
	}
	if config := string(planned.Data[sshConfigFile]); !strings.Contains(config,
		"Host job-worker-0\n  HostName job-worker-0.job\n  Port 22\n") {
		t.Errorf("config %q", config)
	}
}

// TestPluginSshLogsInAtThePortOfTheJob: on the network of its node port 22 is the node's own.
func TestPluginSshLogsInAtThePortOfTheJob(t *testing.T) {
	job := newJob().with("worker", 1).plugin("ssh", "--ssh-port=2222")
	if mistake := describe(job.Job, jobs.Facts{}).Mistake; mistake != nil {
		t.Errorf("mistake %v", mistake)
	}
	secret := see(t, job.Job, admitted("worker", 1), nil).First[0].Object().(*corev1.Secret)
	if config := string(secret.Data[sshConfigFile]); !strings.HasSuffix(config,
		"Host job-worker-0\n  HostName job-worker-0.job\n  Port 2222\n") {
		t.Errorf("config %q", config)
	}
}

// Who is not root must be able to read the keys, and root's must be root's alone.
func TestPluginSshKeysAreReadableByThePodUser(t *testing.T) {
	for arguments, want := range map[string]string{
		"": "/root/.ssh 600", "--no-root": "/etc/volcano/.ssh 644",
		"--ssh-key-file-path=/home/mpi/.ssh": "/home/mpi/.ssh 644", "--ssh-key-file-path=/root/keys": "/root/keys 600",
	} {
		job := newJob().with("worker", 1).plugin("ssh", strings.Fields(arguments)...)
		spec := made(t, see(t, job.Job, admitted("worker", 1), nil), "job-worker-0").Spec
		modes := map[int32]bool{*spec.Volumes[0].Secret.DefaultMode: true}
		for _, item := range spec.Volumes[0].Secret.Items {
			if item.Mode != nil {
				modes[*item.Mode] = true
			}
		}
		got := fmt.Sprintf("%s %o", spec.Containers[0].VolumeMounts[0].MountPath, slices.Collect(maps.Keys(modes)))
		if got != strings.Replace(want, " ", " [", 1)+"]" {
			t.Errorf("%q: keys are in %s, want %s", arguments, got, want)
		}
	}
}
