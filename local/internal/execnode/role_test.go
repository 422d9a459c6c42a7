package execnode

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// roleVariable is the environment variable that makes the test binary a program in a pod: a server that returns its
// host name, or its client.
const roleVariable = "EXECNODE_TEST_ROLE"

// playRole is run by the test binary in a pod.
func playRole(role string) error {
	switch role {
	case "serve":
		listener, err := net.Listen("tcp4", ":"+os.Getenv("PORT"))
		if err != nil {
			return err
		}
		fmt.Println("serving")
		for {
			conn, err := listener.Accept()
			if err != nil {
				return err
			}
			name, _ := os.Hostname()
			fmt.Fprintln(conn, name)
			conn.Close()
		}
	case "ask":
		// As in a real cluster, names and servers may not be available at once.
		var line string
		err := wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, patience,
			true, func(context.Context) (bool, error) {
				conn, err := net.Dial("tcp4", os.Getenv("TARGET"))
				if err != nil {
					return false, nil
				}
				defer conn.Close()
				line, err = bufio.NewReader(conn).ReadString('\n')
				return true, err
			})
		fmt.Print("answer: ", line)
		return err
	default:
		return fmt.Errorf("no role %q", role)
	}
}

// as makes the pod's container play the role.
func as(role string, env ...corev1.EnvVar) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Command = []string{os.Args[0]}
		pod.Spec.Containers[0].Env = append(env, corev1.EnvVar{Name: roleVariable, Value: role})
	}
}

func variable(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
