// An application as Fastify's quick start writes it: a page, and a note that is posted.
import Fastify from 'fastify'

const fastify = Fastify()

fastify.addContentTypeParser('*', { parseAs: 'buffer' }, async (request, body) => body)

fastify.get('/', async () => {
  return { hello: 'world' }
})

fastify.post('/notes', async (request, reply) => {
  reply.code(201)
  return { bytes: request.body ? request.body.length : 0 }
})

await fastify.listen({ port: Number(process.argv[2]), host: '127.0.0.1' })
