// ndnd's checker of trust schemas, over standard input and output: lines of JSON, as interop/python/schemas.py sends them, with
// ndnd's verdicts in lines of JSON.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/security/trust_schema"
)

type line struct {
	Model  string
	Checks [][]any
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func name(text any) enc.Name {
	octets, err := hex.DecodeString(text.(string))
	check(err)
	name, err := enc.NameFromBytes(octets)
	check(err)
	return name
}

func main() {
	input := bufio.NewReader(os.Stdin)
	for {
		text, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		var schema line
		check(json.Unmarshal(text, &schema))
		verdicts := []bool{}
		if schema.Model != "" {
			model, err := hex.DecodeString(schema.Model)
			check(err)
			lvs, err := trust_schema.NewLvsSchema(model)
			check(err)
			for _, names := range schema.Checks {
				verdicts = append(verdicts, lvs.Check(name(names[0]), name(names[1])))
			}
		}
		answer, err := json.Marshal(map[string]any{"model": schema.Model, "verdicts": verdicts})
		check(err)
		fmt.Println(string(answer))
	}
}
