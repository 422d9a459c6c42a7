package main

import (
	"os"

	"github.com/musterhq/muster/cmd/muster/command"
)

func main() {
	os.Exit(command.Main(os.Args))
}
