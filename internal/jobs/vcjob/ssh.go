package vcjob

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/replicas"
)

const (
	privateKeyFile     = "id_rsa"
	publicKeyFile      = "id_rsa.pub"
	authorizedKeysFile = "authorized_keys"
	sshConfigFile      = "config"

	keyBits = 2048

	// rootsKeys is the directory of root's keys.
	rootsKeys = "/root/.ssh"
)

// ssh lets the pods of a job log in to each other, with a key pair of the job's own or one that is given.
func ssh(arguments map[string]string) effect {
	return effect{
		change: func(job *volcano.Job, _ *replicas.Replica, spec *corev1.PodSpec) {
			folder, mode := keysFolder(arguments)
			source := &corev1.SecretVolumeSource{SecretName: keysName(job), DefaultMode: ptr.To(mode)}
			for _, file := range []string{privateKeyFile, publicKeyFile, authorizedKeysFile, sshConfigFile} {
				source.Items = append(source.Items, corev1.KeyToPath{Key: file, Path: file})
			}
			spec.Volumes = append(spec.Volumes,
				corev1.Volume{Name: keysName(job), VolumeSource: corev1.VolumeSource{Secret: source}})
			mount(spec, corev1.VolumeMount{Name: keysName(job), MountPath: folder})
		},
		objects: func(v *view) []write.Write {
			secret := &corev1.Secret{ObjectMeta: v.owned(keysName(v.job)),
				Data: map[string][]byte{sshConfigFile: sshConfig(v.job, arguments["ssh-port"])}}
			if private, public := arguments["ssh-private-key"], arguments["ssh-public-key"]; private != "" && public != "" {
				setKeys(secret, []byte(private), []byte(public))
				return []write.Write{createOrWarn(secret)}
			}
			return []write.Write{write.CreateFilled(secret, makeKeys).OrWarn(jobs.FailedCreate)}
		},
	}
}

// keysFolder returns where keys are mounted in pods, and their file mode. Files of a volume belong to
// root. Another user could not read them if only the owner may, and ssh accepts keys of other owners
// that are readable by all; for root, it does not.
func keysFolder(arguments map[string]string) (folder string, mode int32) {
	folder = arguments["ssh-key-file-path"]
	if isTrue(arguments["no-root"]) && folder == rootsKeys {
		folder = hostsFolder + "/.ssh"
	}
	if strings.HasPrefix(folder+"/", "/root/") {
		return folder, 0o600
	}
	return folder, 0o644
}

func keysName(job *volcano.Job) string { return job.Name + "-ssh" }

// sshConfig names every pod of the job and the port that it listens on: their host keys are not known beforehand, and
// their names mean other pods in another job.
func sshConfig(job *volcano.Job, port string) []byte {
	var out bytes.Buffer
	out.WriteString("StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n")
	for task := range tasksIn(job) {
		for _, host := range hostsOf(job, task) {
			short, _, _ := strings.Cut(host, ".")
			fmt.Fprintf(&out, "Host %s\n  HostName %s\n  Port %s\n", short, host, port)
		}
	}
	return out.Bytes()
}

func setKeys(secret *corev1.Secret, private, public []byte) {
	secret.Data[privateKeyFile], secret.Data[publicKeyFile], secret.Data[authorizedKeysFile] = private, public, public
}

// makeKeys generates a key pair and puts it into the Secret.
func makeKeys(object client.Object) error {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return fmt.Errorf("making a key for ssh: %w", err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	setKeys(object.(*corev1.Secret), private, publicKey(&key.PublicKey))
	return nil
}

// publicKey returns the key as a line of authorized_keys (RFC 4253, section 6.6).
func publicKey(key *rsa.PublicKey) []byte {
	var wire bytes.Buffer
	put := func(field []byte) {
		_ = binary.Write(&wire, binary.BigEndian, uint32(len(field))) // writes to a buffer never fail
		wire.Write(field)
	}
	number := func(n *big.Int) []byte {
		if field := n.Bytes(); len(field) == 0 || field[0] < 0x80 {
			return field
		}
		return append([]byte{0}, n.Bytes()...) // else it would be negative
	}
	put([]byte("ssh-rsa"))
	put(number(big.NewInt(int64(key.E))))
	put(number(key.N))
	return []byte("ssh-rsa " + base64.StdEncoding.EncodeToString(wire.Bytes()) + "\n")
}
