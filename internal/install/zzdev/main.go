package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/musterhq/muster/internal/install"
)

func main() {
	c, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		panic(err)
	}
	c.QPS, c.Burst = 100, 100
	t := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	fmt.Println(install.Apply(ctx, c, install.Options{}), time.Since(t))
}
