// A server of its own for each test, on a free port of the loopback address, and the program beside it.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../../", import.meta.url));
const program = process.env.DEBORA_PROGRAM ?? join(root, "target/debug/debora");

// Whatever the environment of the tests says: the program reads its flags from there, too.
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("DEBORA_")));

/** What the program says and its exit code. */
export function debora(...words) {
    return new Promise((resolve) => {
        execFile(program, words, { env: environment }, (error, out, err) => resolve({ code: error?.code ?? 0, out, err }));
    });
}

export class Server {
    static async start() {
        const server = new Server();
        server.folder = await mkdtemp(join(tmpdir(), "debora-browser-"));
        server.store = join(server.folder, "store.db");
        server.listen = "127.0.0.1:0";
        await server.launch();
        return server;
    }

    async launch() {
        const words = ["serve", "--json", "--log", "warn", "--store", this.store, "--listen", this.listen];
        this.child = spawn(program, words, { env: environment, stdio: ["ignore", "pipe", "pipe"] });
        this.log = "";
        this.child.stderr.on("data", (text) => (this.log += text));
        const lines = createInterface({ input: this.child.stdout });
        const [line] = await Promise.race([once(lines, "line"), once(this.child, "exit").then(() => [null])]);
        assert(line, `the server did not start: ${this.log}`);
        this.address = JSON.parse(line).address;
        // Launched again it is to be found where it was.
        this.listen = new URL(this.address).host;
    }

    /** Ends it as a crash does. */
    async kill() {
        const ended = once(this.child, "exit");
        this.child.kill("SIGKILL");
        await ended;
    }

    async stop() {
        if (this.child.exitCode === null && this.child.signalCode === null) {
            await this.kill();
        }
        await rm(this.folder, { recursive: true });
    }

    /** An API key of this role. */
    async key(name, role, ...experiments) {
        const scope = experiments.flatMap((id) => ["--experiment", id]);
        const made = await debora("keys", "add", name, "--role", role, ...scope, "--json", "--store", this.store);
        assert.equal(made.code, 0, made.err);
        const { key } = JSON.parse(made.out);
        if (role === "admin" && !scope.length) {
            this.admin ??= key;
        }
        return key;
    }

    /** A request to the interface, as an admin if there are keys. */
    async api(path, body, key = this.admin) {
        const response = await fetch(`${this.address}/v1/${path}`, {
            method: body === undefined ? "GET" : "POST",
            headers: { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) },
            body: body === undefined ? undefined : JSON.stringify(body),
        });
        const text = await response.text();
        return { status: response.status, body: text && JSON.parse(text) };
    }

    /** The same, if it must succeed. */
    async ok(path, body) {
        const answer = await this.api(path, body);
        assert(answer.status < 300, `${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
        return answer.body;
    }
}
